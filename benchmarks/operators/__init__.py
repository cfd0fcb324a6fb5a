"""What PyTorch's operators, modules and optimizers allocate on a real card, and on the virtual one."""
