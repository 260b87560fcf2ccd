"""Does the benchmark itself leak the class?"""
