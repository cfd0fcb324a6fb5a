"""torch.compile as the card runs it: PyTorch's own compiler plans the memory, and its code runs on the virtual GPU.

Dynamo traces, AOTAutograd decides what is saved for the backward pass, and Inductor fuses, schedules and writes the
program that allocates, launches and frees. All of that is done as if the card were there, but that no kernel is built:
the program's allocations and the operators that it calls happen on the virtual GPU, its own kernels do nothing.
"""
