"""What builds kubectl cgaudit; nothing of it is shipped."""
