"""The certificate: runs an original and a changed training script, and says whether they train the same model."""
