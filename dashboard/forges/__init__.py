"""GitHub, GitLab, Gitea with Forgejo, and Bitbucket: what they send, and what is sent to them."""
