"""The scheduling cycle: events in; due work, searches and attempts at queued entities; decisions out."""
