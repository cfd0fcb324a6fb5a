"""A real run, watched: what each step took of the card, as the allocator itself counts it, and what went wrong."""
