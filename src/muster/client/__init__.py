"""One client, two transports: in-process and HTTP. Kubeconfig handling lives here too."""
