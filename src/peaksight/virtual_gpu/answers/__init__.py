"""What torch.cuda, the driver and torch itself answer on the virtual GPU."""
