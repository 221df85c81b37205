"""Charts as pictures, SVG or PNG: for mails, chats and previews, which run no script."""
