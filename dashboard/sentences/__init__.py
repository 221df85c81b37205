"""What people read, made of codes and values for page, mail, webhook and command alike."""
