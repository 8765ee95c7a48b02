"""Pages, one file per group of the navigation. Views read a selector, check a form, render."""
