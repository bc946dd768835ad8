"""The pictures of the HTML report: what they show, as numbers and positions. Templates draw them."""
