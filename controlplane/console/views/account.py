"""Signing in and out, language and colours, help and problems."""

from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from controlplane.common.http import ConsoleRequest
from controlplane.console import preferences, problems, svg
from controlplane.console.forms import AccountForm, SignInForm
from controlplane.tenancy import services as tenancy
from controlplane.tenancy.models import User

_STRIP = [svg.Segment("p", 1), svg.Segment("d", 1), svg.Segment("b", 1)]


@sensitive_post_parameters("password")
@never_cache
def sign_in(request: HttpRequest) -> HttpResponse:
    """The page for signed-out people; both outcomes are recorded."""
    target = _safe(request, request.POST.get("next") or request.GET.get("next") or "")
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = form.get_user()
        login(request, user)
        tenancy.note_login(user=user)
        return redirect(target)
    context = {
        "form": form,
        "next": target,
        "strip": svg.bar(_STRIP, total=3, label="", height=6),
    }
    return render(request, "console/login.html", context, status=422 if form.errors else 200)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    user = request.user
    if isinstance(user, User):
        tenancy.note_logout(user=user)
    logout(request)
    return redirect("console:login")


@require_POST
def set_preferences(request: HttpRequest) -> HttpResponse:
    """Keep language or theme: in the user when signed in, else in the session and a cookie."""
    language, theme = request.POST.get("language", ""), request.POST.get("theme", "")
    preferences.keep(request, language=language, theme=theme)
    if "application/json" in request.headers.get("Accept", ""):
        word = preferences.theme_word(theme or preferences.theme_of(request))
        return JsonResponse({"theme_word": str(word)})
    response = HttpResponseRedirect(_safe(request, request.POST.get("next", "")))
    if preferences.is_language(language):
        response.set_cookie(
            "django_language", language, max_age=31_536_000, samesite="Lax", httponly=True
        )
    return response


@login_required
def account(request: ConsoleRequest) -> HttpResponse:
    """Language, theme, time zone and roles of the person."""
    form = AccountForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        user = tenancy.set_preferences(user_id=request.user.pk, **form.cleaned_data)
        with translation.override(user.language):
            messages.success(request, _("Saved."))
        return redirect("console:account")
    context = {"form": form, "sources": []}
    return render(request, "console/account.html", context, status=422 if form.errors else 200)


def help_page(request: HttpRequest) -> HttpResponse:
    """Keys, marks and words."""
    return render(request, "console/help.html", {"problems": problems.catalogue()})


def problem(request: HttpRequest, code: str) -> HttpResponse:
    """What an error code means and what to do."""
    found = problems.catalogue().get(code)
    context: dict[str, object] = {
        "heading": found.title if found else _("Unknown problem"),
        "detail": found.message if found else _("No problem has this code."),
        "hint": found.hint if found else "",
        "code": code,
        "problem_icon": "info",
    }
    return render(request, "console/problem.html", context, status=200 if found else 404)


def _safe(request: HttpRequest, target: str) -> str:
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return target
    return reverse("console:overview")
