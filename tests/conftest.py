"""What every test runs under."""

from hypothesis import settings

# How long an example takes is the machine's business: on a busy one it says nothing about the code. A test gives every
# time what it gave the time before; `pytest --hypothesis-profile explore` looks further.
settings.register_profile("explore", deadline=None)
settings.register_profile("same every time", deadline=None, derandomize=True)
settings.load_profile("same every time")
