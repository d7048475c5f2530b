"""Pages and letters in Chromium; needs ``pip install playwright axe-playwright-python``."""
