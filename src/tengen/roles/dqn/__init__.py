"""Deep Q-learning: the network of a role learns what each of its actions is worth."""
