"""Notebooks: a line and a cell magic that simulate code of a notebook in a process of its own.

Nothing of the notebook's process is touched, and nothing in it is read but the text of its cells: a model on the card
or a dataset in memory cannot be handed over, so that the cells that make them are run again on the virtual card.
"""
