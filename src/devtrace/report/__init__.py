"""The report: findings as data, and its forms: text, html, page, MIME bundle, figures."""
