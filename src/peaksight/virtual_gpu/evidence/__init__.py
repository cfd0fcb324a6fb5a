"""What keeps blocks alive, and what the script's modules, optimizers and loaders are: facts for those who explain."""
