"""What every test runs under."""

from hypothesis import settings

# How long an example takes is the machine's business: on a busy one it says nothing about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
