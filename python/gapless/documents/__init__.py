"""The parts of the documentation that are made from data, and the results that they are made from."""
