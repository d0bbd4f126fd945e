"""A port, as somebody would write it for a small machine: one sequence at a time, one step at a time, plain loops.

``network.run(given, settings)`` takes what goes into a case of the golden vectors and returns what the case asks for.
It shares no line with ``numpy_rnn``; the tests plant bugs in it and let ``rnn-parity vectors check`` name them.
"""
