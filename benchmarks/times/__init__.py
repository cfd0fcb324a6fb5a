"""What the steps of training take on a real card, and what is predicted."""
