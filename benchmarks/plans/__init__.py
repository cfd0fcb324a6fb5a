"""Plans of `fix` against a real card: do they fit, are they as large and as slow as they say, and the fastest?"""
