"""The paper's figures and tables from any store: pure functions of tables, drawn by matplotlib.

catalog (which, and what each needs) ► curves · leakage · pictures · latex ► style; material reads the store
"""
