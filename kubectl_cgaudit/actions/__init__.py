"""What somebody can do about findings, each proven by predicting again."""
