"""Every block on the card: who asked for it, what it is for, and what happens when there is no room for it."""
