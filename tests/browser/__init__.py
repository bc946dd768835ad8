"""Tests of the HTML report in a real Chromium: Node scripts, and what it takes to run them."""
