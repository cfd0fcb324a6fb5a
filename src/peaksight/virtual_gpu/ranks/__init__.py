"""torch.distributed on the virtual GPU."""
