"""Rows -> Plotly figures. Each file draws one thing; theme.py is the only place that knows colours."""
