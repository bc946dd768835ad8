"""The rules over pods, a file for each family: a rule is a filter, a severity and what it measured."""
