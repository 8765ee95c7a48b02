"""Other routers' policies on our own state: each orders endpoints, none knows our price."""
