"""How far simulated ranks reach: models from 1B to 405B, worlds from 8 to 4,096 ranks."""
