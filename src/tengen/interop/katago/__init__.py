"""KataGo's networks and training data."""
