"""What `torch.cuda.memory` records and shows of single allocations."""
