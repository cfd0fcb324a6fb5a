"""What `peaksight watch` costs, and whether it says what the allocator does."""
