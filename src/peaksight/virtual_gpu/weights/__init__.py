"""Checkpoints: loaded from their headers, saved without data, done without where they were never downloaded."""
