"""Golden vectors for those who port: written by ``export``, judged by ``check``. Only ``export`` needs torch."""
