"""What people do with a network: find it, play against it, look inside."""
