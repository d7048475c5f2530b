"""Recipes: how the shipped instances were made, so that anyone can make them again."""
