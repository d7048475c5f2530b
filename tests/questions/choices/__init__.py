"""Choices and certainty: several recourses that differ, actions that hold whatever happens."""
