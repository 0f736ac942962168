"""Authentication (client certificates, tokens), authorization (RBAC), and the review APIs about both."""
