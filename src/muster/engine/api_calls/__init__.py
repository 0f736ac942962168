"""The API calls that carry out decisions: one class a sort of call, and what a call may have to wait for."""
