"""Tables in; HTML, figures and terminal output out.

findings, html/     the report: one self-contained HTML file from the tables of `Findings`
figures/            the paper's figures (matplotlib) and tables (LaTeX) from the tables of `FigureData`
terminal            the ranking on a terminal
tables              rankings and agreement formatted for people
palette             one color and line style per method, everywhere
emphasis, ranks     who stands out in a chart; ranks by MoRF and LeRF per imputer
labels              labels of curves, moved apart
"""
