"""What stands between a browser and every page: who asks, rights, rates, cached pages, headers, odd requests.

settings.py has them in their order. Here alone meet what a request may do, what it costs and how it is
answered; the packages that decide each of these know nothing of the others.
"""
