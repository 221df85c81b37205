"""What people read: names, numbers and sentences, made of codes and values for page, mail, webhook and command alike."""
