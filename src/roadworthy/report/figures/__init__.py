"""The paper's figures and tables: pure functions of `FigureData`.

catalog lists them with what each needs · curves, leakage, pictures (matplotlib) and latex draw them · style is shared
"""
