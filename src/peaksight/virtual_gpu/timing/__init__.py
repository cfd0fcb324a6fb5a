"""The predicted time of each step: a roofline for each operator, and two clocks that run ahead of each other."""
