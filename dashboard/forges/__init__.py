"""GitHub, GitLab, Gitea with Forgejo, and Bitbucket: what they tell, and what they are told."""
