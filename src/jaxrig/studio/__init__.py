"""A local web application over the systems: server, jobs, folder and pages.

Each system offers one room (`jaxarc.studio`, `jaxtrace.studio`, `acbo.studio`): plain
functions from a request to data that call the code behind its commands.
"""
