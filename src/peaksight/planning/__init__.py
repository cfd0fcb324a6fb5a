"""The planner: fixes, each tried alone and together in simulation, and the fastest plan that fits."""
