"""Tests of interviews."""
