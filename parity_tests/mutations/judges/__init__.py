"""The strong check that every mistake must fail, and the usual weak tests: the same check with one thing weakened."""
